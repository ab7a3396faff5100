package onnx

import "fmt"

// A FormatError says what is wrong with a file, and where.
type FormatError struct {
	File string
	Off  int64  // offset in File of the message or field
	What string // what was being read, for example: initializer "w"; may be empty
	Msg  string
}

func (e *FormatError) Error() string {
	s := fmt.Sprintf("%s: offset %d: ", e.File, e.Off)
	if e.What != "" {
		s += e.What + ": "
	}
	return s + e.Msg
}
