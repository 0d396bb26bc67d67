BEGIN TRANSACTION;
CREATE TABLE cells (
        hash TEXT PRIMARY KEY,
        number INTEGER NOT NULL,
        stack INTEGER NOT NULL,
        label TEXT NOT NULL,
        choices TEXT NOT NULL,
        configuration TEXT NOT NULL,
        fold INTEGER,
        seed INTEGER NOT NULL,
        state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed')),
        started REAL,
        seconds REAL,
        machine TEXT,
        versions TEXT,
        result TEXT,
        reason TEXT,
        history TEXT,
        model TEXT
    , cost REAL NOT NULL DEFAULT 1) STRICT;
INSERT INTO "cells" VALUES('ee72bbb1650a28e39d7f79bc5a53bc47c24a41199d098c027c1e571590ad9626',0,0,'none','{"method":"none"}','{"fold":0,"folds":2,"seed":0,"settings":{"data":{"location":"iris","validation_fraction":0.2},"model":{"hidden":[5]},"training":{"epochs":2}}}',0,0,'done',1794932242.88221,7.59314454999184818007e-02,'elsewhere','{"numpy":"2.4.6","python":"3.11.7","topiarist":"0.1.0","torch":"2.13.0+cpu"}','{"accuracy":0.013333333333333334,"diverged_epoch":null,"epochs":2,"file_kb":1.55859375,"kept_epoch":2,"latency_ms":null,"latency_spread_ms":null,"log_loss":2.1385166597667418,"macro_accuracy":0.013333333333333334,"macs":35,"memory_kb":0.16796875,"nonzero":43,"parameters":43,"retraining_epochs":0,"samples":75,"threads":1,"train_accuracy":0.03333333333333333,"train_samples":60,"units":5,"validation_accuracy":0.06666666666666667}',NULL,NULL,NULL,8.01532000000000090754e-04);
INSERT INTO "cells" VALUES('b3c2cf0af0b7ce0e1c2db4d443dca5e334f35680ac1d3f97e86a0ec249f1d4d1',2,0,'cut keep 0.5','{"method":"cut keep 0.5"}','{"fold":0,"folds":2,"seed":0,"settings":{"data":{"location":"iris","validation_fraction":0.2},"method":{"keep":0.5,"name":"cut"},"model":{"hidden":[5]},"training":{"epochs":2}}}',0,0,'done',1794932242.88221,7.59314454999184818007e-02,'elsewhere','{"numpy":"2.4.6","python":"3.11.7","topiarist":"0.1.0","torch":"2.13.0+cpu"}','{"accuracy":0.013333333333333334,"diverged_epoch":null,"epochs":2,"file_kb":1.57421875,"kept_epoch":2,"latency_ms":null,"latency_spread_ms":null,"log_loss":2.1498508705853707,"macro_accuracy":0.013333333333333334,"macs":14,"memory_kb":0.07421875,"nonzero":19,"parameters":19,"retraining_epochs":0,"samples":75,"threads":1,"train_accuracy":0.05,"train_samples":60,"units":2,"validation_accuracy":0.13333333333333333}',NULL,NULL,NULL,8.01532000000000090754e-04);
INSERT INTO "cells" VALUES('077e43bf7f72cdbf4e96c5439c770f2eaac64dbd5c9e354744d2d96966d954e5',1,1,'none','{"method":"none"}','{"fold":1,"folds":2,"seed":0,"settings":{"data":{"location":"iris","validation_fraction":0.2},"model":{"hidden":[5]},"training":{"epochs":2}}}',1,0,'waiting',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,8.01532000000000090754e-04);
INSERT INTO "cells" VALUES('ce08af08a7c3e80433d302330e0562906c5e643cb0d0e7dc709a44362c41451c',3,1,'cut keep 0.5','{"method":"cut keep 0.5"}','{"fold":1,"folds":2,"seed":0,"settings":{"data":{"location":"iris","validation_fraction":0.2},"method":{"keep":0.5,"name":"cut"},"model":{"hidden":[5]},"training":{"epochs":2}}}',1,0,'waiting',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,8.01532000000000090754e-04);
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO "study" VALUES('declaration','{"data":{"location":"iris","validation_fraction":0.2},"folds":2,"methods":[{"name":"none"},{"keep":0.5,"name":"cut"}],"model":{"hidden":[5]},"models":false,"stack":1,"training":{"epochs":2}}');
INSERT INTO "study" VALUES('folder','"elsewhere"');
INSERT INTO "study" VALUES('samples','"d09d068b354257caeabc73d515967ce0682c0438f22074927038b106a3fcb2cb"');
INSERT INTO "study" VALUES('versions','{"numpy":"2.4.6","topiarist":"0.1.0","torch":"2.13.0+cpu"}');
INSERT INTO "study" VALUES('created','1794932242.8493667');
COMMIT;
PRAGMA user_version = 2;
