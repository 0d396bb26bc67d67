"""Refit: the layers behind a change make up for it by least squares on calibration data."""
