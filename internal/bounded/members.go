package bounded

import (
	"bufio"
	"errors"
	"io"
)

// maxMember is the maximum size in bytes of a member that is decoded from a stream.
const maxMember = 64 << 20

// Members decodes the values of some keys of an object, and skips the others without memory for them. It stops when it
// has all.
func Members(r io.Reader, fields map[string]any) error {
	s := &stream{in: bufio.NewReaderSize(r, 1<<16)}
	if c, err := s.next(); err != nil || c != '{' {
		return errors.Join(errors.New("not an object"), unexpected(err))
	}
	for found := 0; found < len(fields); {
		c, err := s.next()
		if err != nil {
			return unexpected(err)
		}
		switch c {
		case '}':
			return nil
		case ',':
			continue
		}
		key, err := s.key(c)
		if err != nil {
			return err
		}
		to, wanted := fields[key]
		text, err := s.value(wanted)
		if err != nil {
			return err
		}
		if wanted {
			found++
			if err := JSON(text, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// A stream is JSON that is read byte by byte. Keys and values that are wanted are validated when they are decoded, the
// others are not.
type stream struct {
	in   *bufio.Reader
	kept []byte
	keep bool
}

// unexpected is the error of a text that ends too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *stream) read() (byte, error) {
	c, err := s.in.ReadByte()
	if err != nil {
		return 0, unexpected(err)
	}
	if s.keep {
		if len(s.kept) == maxMember {
			return 0, errorf("a member has more than %d bytes", maxMember)
		}
		s.kept = append(s.kept, c)
	}
	return c, nil
}

// next is the first byte after spaces.
func (s *stream) next() (byte, error) {
	for {
		if c, err := s.read(); err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
	}
}

// key reads a key that begins with c, and its colon.
func (s *stream) key(c byte) (key string, err error) {
	if c != '"' {
		return "", errors.New("not an object")
	}
	s.kept, s.keep = append(s.kept[:0], c), true
	err = s.quoted()
	s.keep = false
	if err != nil {
		return "", err
	}
	if err := JSON(s.kept, &key); err != nil {
		return "", err
	}
	if c, err := s.next(); err != nil || c != ':' {
		return "", errors.Join(errors.New("not an object"), err)
	}
	return key, nil
}

// quoted reads the rest of a string.
func (s *stream) quoted() error {
	for {
		c, err := s.read()
		if err == nil && c == '\\' {
			_, err = s.read()
		}
		if err != nil || c == '"' {
			return err
		}
	}
}

// value reads a value, and returns its text if keep is set.
func (s *stream) value(keep bool) ([]byte, error) {
	s.kept, s.keep = s.kept[:0], keep
	defer func() { s.keep = false }()
	for depth := 0; ; {
		c, err := s.next()
		if err != nil {
			return nil, err
		}
		switch c {
		case '"':
			if err := s.quoted(); err != nil {
				return nil, err
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth > 0 {
			continue
		}
		switch c {
		case '"', '}', ']':
			return s.kept, nil
		}
		// A number or word ends before the next separator.
		ahead, err := s.in.Peek(1)
		if err != nil {
			return nil, unexpected(err)
		}
		switch ahead[0] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return s.kept, nil
		}
	}
}
