//go:build !amd64 || noasm

package kernel

func (s *SparseRows) bulk(_, _ []float32, _, _ int, _ bool) bool { return false }
