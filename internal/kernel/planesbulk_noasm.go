//go:build !amd64 || noasm

package kernel

// Without assembly the twins process all elements.
func splitPlanes2Bulk(_, _, _ []byte, _ bool) int { return 0 }

func mergePlanes2Bulk(_, _, _ []byte, _ bool) int { return 0 }

func splitPlanes4Bulk(_, _, _, _, _ []byte, _ bool) int { return 0 }

func mergePlanes4Bulk(_, _, _, _, _ []byte, _ bool) int { return 0 }
