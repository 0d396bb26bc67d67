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
INSERT INTO "cells" VALUES('2baa6e8d9b28c127729df8019eea26418af9adc83a5a7f21427c15787ba78743',0,0,'distinctiveness published yes angle_degrees 15','{"method":"distinctiveness published yes angle_degrees 15"}','{"fold":0,"folds":2,"seed":0,"settings":{"data":{"location":"iris","validation_fraction":0.2},"method":{"angle_degrees":15.0,"name":"distinctiveness","published":true},"model":{"hidden":[5]},"training":{"epochs":2}}}',0,0,'done',1.79493224326615905764e+09,9.50046340003609657287e-02,'elsewhere','{"numpy":"2.4.6","python":"3.11.7","topiarist":"0.1.0","torch":"2.13.0+cpu"}','{"accuracy":0.013333333333333334,"diverged_epoch":null,"epochs":2,"file_kb":1.66015625,"kept_epoch":2,"latency_ms":null,"latency_spread_ms":null,"log_loss":2.0103104871471262,"macro_accuracy":0.013333333333333334,"macs":28,"memory_kb":0.13671875,"nonzero":35,"parameters":35,"retraining_epochs":0,"samples":75,"threads":1,"train_accuracy":0.03333333333333333,"train_samples":60,"units":4,"validation_accuracy":0.13333333333333333}',NULL,NULL,NULL,1.6030640000000001815e-03);
INSERT INTO "cells" VALUES('7f21c7b6173d1016d34451de5fc9c49d62cd2b0590bd1478540341db710b2063',1,1,'distinctiveness published yes angle_degrees 15','{"method":"distinctiveness published yes angle_degrees 15"}','{"fold":1,"folds":2,"seed":0,"settings":{"data":{"location":"iris","validation_fraction":0.2},"method":{"angle_degrees":15.0,"name":"distinctiveness","published":true},"model":{"hidden":[5]},"training":{"epochs":2}}}',1,0,'waiting',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.6030640000000001815e-03);
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO "study" VALUES('declaration','{"data":{"location":"iris","validation_fraction":0.2},"folds":2,"methods":[{"angle_degrees":15,"name":"distinctiveness","published":true}],"model":{"hidden":[5]},"models":false,"stack":1,"training":{"epochs":2}}');
INSERT INTO "study" VALUES('folder','"elsewhere"');
INSERT INTO "study" VALUES('samples','"d09d068b354257caeabc73d515967ce0682c0438f22074927038b106a3fcb2cb"');
INSERT INTO "study" VALUES('versions','{"numpy":"2.4.6","topiarist":"0.1.0","torch":"2.13.0+cpu"}');
INSERT INTO "study" VALUES('created','1794932243.2430732');
COMMIT;
PRAGMA user_version = 2;
