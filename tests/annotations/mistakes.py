"""Mistakes that a type checker finds before anything runs: a comment says what is wrong with each line."""

import numpy as np

import roiops as mx

data, rois = mx.sym.Variable("data"), mx.sym.Variable("rois")
image, boxes = np.zeros((1, 3, 8, 8), np.float32), np.zeros((2, 5), np.float32)

mx.sym.ROIAlgn(data, rois, pooled_size=7, spatial_scale=1.0)  # wrong: ROIAlgn
mx.nd.ROIAlgn(image, boxes, pooled_size=7, spatial_scale=1.0)  # wrong: ROIAlgn
mx.sym.contrib.ROIAlgn(data, rois, pooled_size=7, spatial_scale=1.0)  # wrong: ROIAlgn
mx.nd.contrib.ROIAlgn(image, boxes, pooled_size=7, spatial_scale=1.0)  # wrong: ROIAlgn

mx.sym.ROIAlign(data, rois, pooled_sise=7, spatial_scale=1.0)  # wrong: pooled_sise
mx.nd.ROIAlign(image, boxes, pooled_sise=7, spatial_scale=1.0)  # wrong: pooled_sise
mx.sym.contrib.ROIAlign(data, rois, pooled_sise=7, spatial_scale=1.0)  # wrong: pooled_sise
mx.nd.contrib.ROIAlign(image, boxes, pooled_sise=7, spatial_scale=1.0)  # wrong: pooled_sise

mx.nd.ROIAlign(image, boxes, pooled_size=7, spatial_scale=1.0, mode="maximum")  # wrong: maximum
mx.nd.ROIAlign(image, boxes, pooled_size=7, spatial_scale="1/16")  # wrong: spatial_scale
mx.sym.ROIPooling(image, rois, pooled_size=7, spatial_scale=1.0)  # wrong: Symbol
