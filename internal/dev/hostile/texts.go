package hostile

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Names are texts in place of the name of a file, a digest or an address.
func Names() []string {
	return []string{
		"", ".", "..", "../planted", "a/../../planted", "/planted", `..\planted`, `C:\planted`, "a//b", "NUL", ".git/hooks/post-checkout",
		"a\x00b", "a\nb", "\x1b]0;owned\a", "m\u202exnno.exe", "\u2066a", "a\u200bb", "a\ufeffb", strings.Repeat("a/", 2000), strings.Repeat("x", 5000),
		"file:///etc/passwd", "http://user:secret@elsewhere.invalid/x", "${HOME}", "%2e%2e%2fplanted", "-rf", "*", "{a,b}{a,b}{a,b}",
		strings.Repeat("0", 64), strings.Repeat("F", 64), "sha256:" + strings.Repeat("0", 63), "md5:d41d8cd98f00b204e9800998ecf8427e", "models:/../x", "2026-13-45",
	}
}

// YAML are texts of YAML that are hard on parsers of it.
func YAML() []Lie {
	laughs := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		c := string(rune('a' + i))
		next := string(rune('b' + i))
		laughs += next + ": &" + next + " [" + strings.Repeat("*"+c+", ", 8) + "*" + c + "]\n"
	}
	return []Lie{
		{"expanding aliases", laughs},
		{"an alias of itself", "a: &a [*a]\n"},
		{"merged with itself", "a: &a\n  <<: *a\n"},
		{"an alias of nothing", "a: *b\n"},
		{"deep lists", strings.Repeat("[", 5000)},
		{"deep maps", strings.Repeat("{a: ", 5000)},
		{"deep blocks", strings.Repeat("- ", 5000)},
		{"deep indentation", deepBlocks(300)},
		{"keys that are maps", strings.Repeat("? ", 2000)},
		{"many documents", strings.Repeat("---\na: 1\n", 2000)},
		{"the same key twice", "a: 1\na: 2\n"},
		{"many empty elements", "a:\n" + strings.Repeat("-\n", 10000)},
		{"many tags", strings.Repeat("!a ", 3000)},
		{"a type of a language", "a: !!python/object/apply:os.system [id]\n"},
		{"a byte order mark", "\ufeffa: 1\n"},
		{"UTF-16", "\xff\xfea\x00:\x00 \x001\x00"},
		{"invalid UTF-8", "a: \xff\xfe\n"},
		{"controls", "a: \x00\x1b[2J\n"},
		{"direction of text", "a: \u202eb\n"},
		{"tabs", "a:\n\t- b\n"},
		{"huge numbers", "a: " + strings.Repeat("9", 5000) + "\nb: 1e99999\nc: 0x" + strings.Repeat("f", 100) + "\n"},
		{"no end of a text", "a: \"" + strings.Repeat("x", 1000)},
		{"an indented text", "a: |9\n  b\n"},
		{"directives", strings.Repeat("%YAML 9.9\n", 500) + "---\n"},
		{"long key", strings.Repeat("k", 20000) + ": 1\n"},
		{"null", "~\n"}, {"nothing", ""}, {"a number", "1\n"}, {"a list", "- a\n"}, {"only a comment", "# a"},
	}
}

// deepBlocks is a block of YAML with so many levels, each indented further.
func deepBlocks(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// Lines are texts of one entry a line that are hard on readers of it.
func Lines() []Lie {
	return []Lie{
		{"nothing", ""}, {"an empty line", "\n"}, {"many empty lines", strings.Repeat("\n", 20000)}, {"no end", "a"}, {"carriage returns", "a\r\nb\rc"},
		{"a long line", strings.Repeat("a", 100000)}, {"many lines", strings.Repeat("a\n", 20000)}, {"zeros", "\x00\x00\n"},
		{"invalid UTF-8", "\xff\xfe\n"}, {"a byte order mark", "\ufeffa\n"}, {"names", strings.Join(Names(), "\n")},
		{"quotes", strings.Repeat(`"`, 9999)}, {"separators", strings.Repeat(",", 50000) + "\n" + strings.Repeat(";", 50000)},
		{"numbers", "1e999,-1e999,nan,inf,-0," + strings.Repeat("9", 5000) + "\n"},
	}
}

// headSize is the part of binary content whose numbers Binary changes: formats have their lengths there.
const headSize = 64

// Binary returns lies of binary content: it is cut, goes on, and numbers at its head, in both orders of bytes, are the
// largest and others that overflow.
func Binary(content []byte) []Lie {
	text := string(content)
	list := []Lie{{"nothing", ""}, {"more", text + "\x00"}, {"twice", text + text}}
	for _, n := range []int{1, 2, 4, 8, 16, len(text) / 2, len(text) - 1} {
		if 0 < n && n < len(text) {
			list = append(list, Lie{fmt.Sprintf("cut after %d", n), text[:n]})
		}
	}
	for at := 0; at < min(headSize, len(text)-8); at += 4 {
		for name, write := range map[string]func(b []byte){
			"the largest 8": func(b []byte) { binary.LittleEndian.PutUint64(b, 1<<64-1) },
			"positive 8":    func(b []byte) { binary.LittleEndian.PutUint64(b, 1<<63-1) },
			"2^40 8":        func(b []byte) { binary.LittleEndian.PutUint64(b, 1<<40) },
			"positive 4":    func(b []byte) { binary.LittleEndian.PutUint32(b, 1<<31-1) },
			"big-endian 4":  func(b []byte) { binary.BigEndian.PutUint32(b, 1<<31-1) },
			"negative 4":    func(b []byte) { binary.BigEndian.PutUint32(b, 1<<31) },
			"zero 4":        func(b []byte) { binary.LittleEndian.PutUint32(b, 0) },
		} {
			b := []byte(text)
			write(b[at:])
			list = append(list, Lie{fmt.Sprintf("offset %d: %s", at, name), string(b)})
		}
	}
	return sorted(list)
}

// sorted orders lies by their names, so that they do not depend on the order of a map.
func sorted(lies []Lie) []Lie {
	slices.SortFunc(lies, func(a, b Lie) int { return strings.Compare(a.Name, b.Name) })
	return lies
}
