// Package float stores weights as smaller floats: float16 and bfloat16, for storage or for the arithmetic too, float8
// and float4.
package float
