"""Faster R-CNN and R-FCN, trained, evaluated and shown with roiops alone."""
