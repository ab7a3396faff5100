package kernel

// ZeroWordsBelow is ZeroBelow for types other than float32: x holds float16, bfloat16 or float64 elements as bits, and
// those whose bits without the sign are below limit become +0.
func ZeroWordsBelow[T uint16 | uint64](x []T, limit T) {
	if limit == 0 {
		return
	}
	top := limit - 1
	for i, v := range x {
		if v&^signOf[T]() <= top {
			x[i] = 0
		}
	}
}

// MaxWord returns the largest magnitude in x as bits without the sign, 0 for an empty x. A result above the type's
// infinity means NaN.
func MaxWord[T uint16 | uint64](x []T) T {
	most := T(0)
	for _, v := range x {
		most = max(most, v&^signOf[T]())
	}
	return most
}

// signOf is the top bit of T.
func signOf[T uint16 | uint64]() T { return ^(^T(0) >> 1) }
