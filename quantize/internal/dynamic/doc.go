// Package dynamic quantizes weights of MatMul and Gemm to 8 bits, and activations at run time (DynamicQuantizeLinear).
package dynamic
