package declare

import (
	"bytes"
	"io"
	"strings"
)

// esc is the byte that begins a terminal escape sequence.
const esc = 0x1b

const (
	longestControl = 64      // maximum length of a control sequence, such as a colour
	longestString  = 4 << 10 // maximum length of a control string, such as a title
)

// cleaner removes terminal escape sequences from a stream, and writes the rest to another
// writer. It removes a sequence completely if the sequence ends on the same line.
// Otherwise it removes only the escape character, so that the text after it is not lost.
type cleaner struct {
	to    io.Writer
	state cleanerState
	// held are the bytes of the current sequence, without the introducing bytes.
	held []byte
	one  [1]byte // buffer for a single byte
}

type cleanerState uint8

const (
	inText         cleanerState = iota
	afterEscape                 // after ESC
	inDesignation               // after ESC ( or similar: one more byte follows
	inControl                   // after ESC [
	inString                    // after ESC ] or similar: until BEL or ESC \
	inStringEscape              // in a string, after ESC
	inStringC1                  // in a string, after the first byte of a C1 control
	afterC1                     // after the first byte of a C1 control (one character that means ESC and a byte)
)

// c1 is the first byte of all C1 control characters in UTF-8.
const c1 = 0xc2

// Write returns an error only if the other writer does.
func (c *cleaner) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if c.state == inText {
			i := bytes.IndexByte(p, esc)
			if j := bytes.IndexByte(p[:max(i, 0)], c1); i < 0 {
				i = bytes.IndexByte(p, c1)
			} else if j >= 0 {
				i = j
			}
			if i < 0 {
				i = len(p)
			}
			if err := c.pass(p[:i]); err != nil {
				return 0, err
			}
			if p = p[i:]; len(p) == 0 {
				break
			}
		}
		if err := c.next(p[0]); err != nil {
			return 0, err
		}
		p = p[1:]
	}
	return n, nil
}

// Close writes the held bytes of a sequence that did not end.
func (c *cleaner) Close() error { return c.release() }

func (c *cleaner) pass(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := c.to.Write(p)
	return err //nolint:wrapcheck // the writer is the caller's
}

// drop discards a complete sequence.
func (c *cleaner) drop() error {
	c.state, c.held = inText, c.held[:0]
	return nil
}

// release writes the held bytes, because they are not a sequence.
func (c *cleaner) release() error {
	held := c.held
	if c.state == afterC1 || c.state == inStringC1 {
		held = append(held, c1)
	}
	c.state, c.held = inText, held[:0]
	return c.pass(held)
}

// again writes the held bytes, and then handles b as the start of something new.
func (c *cleaner) again(b byte) error {
	if err := c.release(); err != nil {
		return err
	}
	return c.next(b)
}

// hold keeps a byte of a sequence. If the sequence is too long, it is treated as text.
func (c *cleaner) hold(b byte, most int) error {
	if len(c.held) >= most {
		return c.again(b)
	}
	c.held = append(c.held, b)
	return nil
}

func (c *cleaner) next(b byte) error {
	switch c.state {
	case afterEscape:
		return c.introduced(b)
	case inDesignation:
		if isAlphanumeric(b) {
			return c.drop()
		}
		return c.again(b)
	case inControl:
		switch {
		case b >= ' ' && b <= '?' && b != '"': // parameters; not a quote, because it may begin a JSON string
			return c.hold(b, longestControl)
		case isAlphanumeric(b) || strings.IndexByte("@^_`~", b) >= 0:
			return c.drop()
		default:
			return c.again(b)
		}
	case inString, inStringEscape, inStringC1:
		return c.nextOfString(b)
	case afterC1:
		return c.introducedC1(b)
	default:
		switch b {
		case esc:
			c.state = afterEscape
		case c1:
			c.state = afterC1
		default:
			c.one[0] = b
			return c.pass(c.one[:])
		}
		return nil
	}
}

// introduced handles the byte after ESC.
func (c *cleaner) introduced(b byte) error {
	switch {
	case b == '[':
		c.state, c.held = inControl, append(c.held, b)
	case strings.IndexByte("]P_^X", b) >= 0:
		c.state, c.held = inString, append(c.held, b)
	case strings.IndexByte(" #%()*+-./", b) >= 0:
		c.state, c.held = inDesignation, append(c.held, b)
	case isAlphanumeric(b) || strings.IndexByte(`<=>\`, b) >= 0:
		return c.drop()
	default:
		return c.again(b)
	}
	return nil
}

// introducedC1 handles the second byte of a possible C1 control.
func (c *cleaner) introducedC1(b byte) error {
	switch b {
	case 0x9b: // the same as ESC [
		c.state = inControl
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f: // the same as ESC P, X, ], ^ and _
		c.state = inString
	default:
		return c.again(b)
	}
	return nil
}

// nextOfString handles a byte of a control string.
func (c *cleaner) nextOfString(b byte) error {
	state := c.state
	c.state = inString
	switch {
	case state == inStringEscape && b == '\\', state == inStringC1 && b == 0x9c, state == inString && b == '\a':
		return c.drop()
	case state == inStringEscape: // a new sequence begins, so the string never ended
		if err := c.release(); err != nil {
			return err
		}
		c.state = afterEscape
		return c.next(b)
	case state == inStringC1 && (b == 0x9b || b == 0x90 || b >= 0x98 && b <= 0x9f):
		if err := c.release(); err != nil {
			return err
		}
		c.state = afterC1
		return c.next(b)
	case state == inStringC1:
		c.held = append(c.held, c1)
		return c.hold(b, longestString)
	case b == esc:
		c.state = inStringEscape
		return nil
	case b == c1:
		c.state = inStringC1
		return nil
	case b == '\n' || b == '\r':
		return c.again(b)
	default:
		return c.hold(b, longestString)
	}
}

func isAlphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// withoutEscapes returns a text without terminal escape sequences.
func withoutEscapes(text []byte) []byte {
	var b bytes.Buffer
	c := cleaner{to: &b}
	_, _ = c.Write(text) // a bytes.Buffer returns no error
	_ = c.Close()        // a bytes.Buffer returns no error
	return b.Bytes()
}
