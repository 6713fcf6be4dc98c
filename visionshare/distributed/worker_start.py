"""What the process imports that workers of this machine are forks of."""

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
