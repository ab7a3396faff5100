package mcompress

import (
	"github.com/mcompress/mcompress/pass"
)

// An Argument of Compress is a Step, or an Option, which sets a field of the request.
type Argument interface {
	// Method is the description of the method of a step; nil for an Option, which has none.
	Method() *pass.Method
}

// An Option sets a field of a Request: the short form of requests in one call. It is no Step.
type Option func(*Request)

// Method returns nil: an option has no method.
func (Option) Method() *pass.Method { return nil }

// WithData sets Request.Data to the samples at a path.
func WithData(path string) Option { return WithDataset(Data{Path: path}) }

// WithDataset sets Request.Data.
func WithDataset(d Data) Option { return func(r *Request) { r.Data = d } }

// WithTestData sets Request.Verification.Data.
func WithTestData(d Data) Option { return func(r *Request) { r.Verification.Data = d } }

// WithGates adds to Request.Gates.
func WithGates(gates ...Gate) Option { return func(r *Request) { r.Gates = append(r.Gates, gates...) } }

// WithAllowRandomInputs sets Request.Verification.AllowRandomInputs.
func WithAllowRandomInputs() Option {
	return func(r *Request) { r.Verification.AllowRandomInputs = true }
}

// WithVerify sets Request.Verification.Force, or Skip if on is false.
func WithVerify(on bool) Option {
	return func(r *Request) { r.Verification.Force, r.Verification.Skip = on, !on }
}

// WithReports sets Request.Reports.Formats.
func WithReports(formats ...string) Option { return func(r *Request) { r.Reports.Formats = formats } }

// WithTarget sets Request.Target.
func WithTarget(names string) Option { return func(r *Request) { r.Target = names } }

// requestOf is the request of the arguments.
func requestOf(args []Argument) (r Request, err error) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case Option:
			if arg != nil {
				arg(&r)
			}
		case Step:
			r.Steps = append(r.Steps, arg)
		case nil:
			return r, fieldErrorf("{Steps}: argument %d is nil", i+1)
		default:
			return r, fieldErrorf("{Steps}: argument %d, %T, is neither the option struct of a method nor an Option", i+1, arg)
		}
	}
	return r, nil
}
