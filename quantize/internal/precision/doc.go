// Package precision decides which float32 values of a model become float16 or bfloat16, and puts
// Cast nodes where the two meet.
//
// Products, convolutions and recurrent layers compute in the narrow type. What lies between them
// goes along with its inputs: it is narrow if one of them is. So a stretch of float32, such as what
// is computed from positions, masks and sizes, ends at the first narrow value, with one Cast, and an
// operator that stays float32 for its numerics draws its own small sums and roots in.
//
// It knows neither weights' payloads nor what becomes of constants: a caller stores those in the
// type that Plan.Narrow gives for each of their uses.
package precision
