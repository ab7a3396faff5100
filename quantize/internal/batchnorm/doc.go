// Package batchnorm folds BatchNormalization, and Mul and Add by channel, into adjacent layers.
package batchnorm
