package onnx

import "fmt"

// A FormatError is an error in a file, with its offset.
type FormatError struct {
	File string
	Off  int64  // offset in File of the message or field
	What string // what was being read, for example: initializer "w"; may be empty
	Msg  string
	Err  error // the cause outside of the file, such as external data that cannot be opened; may be nil
}

func (e *FormatError) Error() string {
	s := fmt.Sprintf("%s: offset %d: ", e.File, e.Off)
	if e.What != "" {
		s += e.What + ": "
	}
	return s + e.Msg
}

// Unwrap returns the cause outside of the file, nil if the content is malformed.
func (e *FormatError) Unwrap() error { return e.Err }

// A locationError is external data that cannot be opened.
type locationError struct {
	msg string
	err error
}

func (e *locationError) Error() string { return e.msg }
func (e *locationError) Unwrap() error { return e.err }
