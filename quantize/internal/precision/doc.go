// Package precision decides which float32 values of a model become float16 or bfloat16, and inserts
// Cast nodes at the borders (mixed precision).
//
// Products, convolutions and recurrent layers compute in the narrow type. Other operators follow
// their inputs: they are narrow if one input is. A float32 region, such as the computation
// of positions, masks and sizes, therefore ends at the first narrow value with one Cast, and an
// operator that stays float32 for its numerics keeps its own reductions and roots in float32.
//
// It must not know payloads of weights nor the storage of constants: the caller stores those in the
// type that Plan.Narrow returns for each of their uses.
package precision
