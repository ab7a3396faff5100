package kernel

// EverySecond copies every second element: dst[i] becomes src[2*i]. They must not overlap.
func EverySecond[T any](dst, src []T) {
	if len(dst) == 0 {
		return
	}
	within("src", len(src), 2*len(dst)-1)
	if done := everySecondBulk(dst, src); done < len(dst) {
		everySecondGo(dst[done:], src[2*done:])
	}
}

func everySecondGo[T any](dst, src []T) {
	for i := range dst {
		dst[i] = src[2*i]
	}
}
