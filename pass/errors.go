package pass

import "fmt"

// An OptionError is an invalid option, or a combination of options that exclude each other: a mistake of the caller,
// which no other model and no second attempt repairs.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// OptionErrorf formats an *OptionError, as fmt.Errorf does.
func OptionErrorf(format string, args ...any) error {
	return &OptionError{fmt.Errorf(format, args...)}
}

// An Unfit error reports that a method does not support a weight's values. The pipeline runs again with Precheck, and
// the weight is skipped. One that a step returns all the same excludes the weight from all steps, so that no weight
// ends a run.
type Unfit struct {
	Tensor string
	Reason Reason
}

func (u *Unfit) Error() string {
	return fmt.Sprintf("tensor %q: %s: %s", u.Tensor, u.Reason.Code, u.Reason.Detail)
}
