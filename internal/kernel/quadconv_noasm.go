//go:build !amd64 || noasm

package kernel

// Without assembly the twins process all elements.

func (q *QuadConv) bulk(_ []byte, _ int, _ []byte, _, _, _, _ int) bool { return false }

func (q *QuadWindow) bulk(_, _ []byte, _, _ int) bool { return false }

func (m *MaxBytes) bulk(_, _ []byte, _, _ int) (channels int) { return 0 }
