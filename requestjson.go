package mcompress

import (
	"encoding/json"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/pass"
)

// A storedRequest is the JSON form of a Request: its steps are a recipe. Functions are left out.
type storedRequest struct {
	*plainRequest
	Recipe string `json:",omitempty"`
}

// A plainRequest is a Request without its methods.
type plainRequest Request

// MarshalJSON returns the fields of the request by their names, and the steps as the YAML text of a recipe. Functions
// and options that recipes do not have are left out.
func (r Request) MarshalJSON() ([]byte, error) {
	s := storedRequest{plainRequest: (*plainRequest)(&r)}
	if len(r.Steps) > 0 {
		text, err := (&pass.Recipe{Steps: r.Steps}).Text(nil)
		if err != nil {
			return nil, err
		}
		s.Recipe = string(text)
	}
	return json.Marshal(s)
}

// UnmarshalJSON is the inverse of MarshalJSON. Unknown fields are errors.
func (r *Request) UnmarshalJSON(text []byte) error {
	s := storedRequest{plainRequest: &plainRequest{}}
	if err := bounded.StrictJSON(text, &s); err != nil {
		return err
	}
	*r = Request(*s.plainRequest)
	if s.Recipe == "" {
		return nil
	}
	recipe, err := pass.ParseRecipe(Methods(), []byte(s.Recipe))
	if err == nil {
		r.Steps = recipe.Steps
	}
	return err
}
