//go:build !amd64 || noasm

package kernel

func (q sparseQuads) bulk(_, _ []float32, _, _ int, _ bool) bool { return false }

func (q sparseQuads) bulkAt(_, _ []float32, _ []int32, _ int, _ bool) bool { return false }

func sparseWide() int { return 64 }

func (sparseQuads) decodeBulk([]byte, SparseType, []float32) bool { return false }

func int32FromFloatBulk([]int32, []float32) int { return 0 }
