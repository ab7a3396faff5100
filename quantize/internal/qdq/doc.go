// Package qdq quantizes weights and activations with static ranges: it inserts QuantizeLinear and DequantizeLinear
// around layers.
package qdq
