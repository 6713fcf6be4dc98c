"""Modules that the fork server imports once for all workers on this machine."""

# ruff: noqa: F401
import cv2
import distributed
import h5py
import numba
import scipy.optimize
import sklearn.linear_model

import visionshare.generators
import visionshare.solvers
import visionshare.store
