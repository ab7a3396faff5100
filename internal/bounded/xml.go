package bounded

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
)

// element is the number of bytes that an element of XML takes with those of its lists.
const element = 256

// XML decodes a document as xml.Unmarshal does. One with too many or too deep elements is an *Error.
func XML(text []byte, v any) error {
	if err := checkXML(text); err != nil {
		return err
	}
	return xml.Unmarshal(text, v)
}

func checkXML(text []byte) error {
	budget, depth := NewBudget(), 0
	if err := budget.Take(int64(len(text))); err != nil {
		return err
	}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return errorf("nested deeper than %d levels", maxDepth)
			}
			if err := budget.Take(element); err != nil {
				return err
			}
		case xml.EndElement:
			depth--
		}
	}
}
