package warmhook

import (
	"errors"
	"io"
)

// Request is what the command sends to the worker.
type Request struct {
	Agent, Event string
	// Dir is the directory in which the search for the project starts.
	Dir string
	// Environ is the environment of the command, as os.Environ returns it.
	Environ []string
	// Stdin is the event.
	Stdin []byte
}

// Reply is what the command must print, and its exit code.
type Reply struct {
	Stdout, Stderr []byte
	Code           int
}

// The bytes in front of a reply. The worker sends alive again and again while it works.
const (
	alive    = 0
	replying = 1
)

// most limits the size of a message.
const most = 128 << 20

var (
	errTooLong = errors.New("warmhook: the message is too long")
	errOdd     = errors.New("warmhook: the message is invalid")
)

func appendText[T string | []byte](to []byte, text T) []byte {
	n := len(text)
	return append(append(to, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), text...)
}

// cutText returns the first text of a message and the rest.
func cutText(data []byte) (text, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, errOdd
	}
	n := int(data[0])<<24 | int(data[1])<<16 | int(data[2])<<8 | int(data[3])
	if n > len(data)-4 {
		return nil, nil, errOdd
	}
	return data[4 : 4+n], data[4+n:], nil
}

// Encode returns the request as bytes.
func (r *Request) Encode() []byte {
	var environ []byte
	for _, v := range r.Environ {
		environ = append(append(environ, v...), 0)
	}
	data := appendText(nil, r.Agent)
	data = appendText(data, r.Event)
	data = appendText(data, r.Dir)
	data = appendText(data, environ)
	return appendText(data, r.Stdin)
}

// ReadRequest reads a request until the end of the input.
func ReadRequest(from io.Reader) (*Request, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, errTooLong
	}
	var parts [5][]byte
	for i := range parts {
		if parts[i], data, err = cutText(data); err != nil {
			return nil, err
		}
	}
	if len(data) > 0 {
		return nil, errOdd
	}
	r := &Request{Agent: string(parts[0]), Event: string(parts[1]), Dir: string(parts[2]), Stdin: parts[4]}
	for environ := parts[3]; len(environ) > 0; {
		n := 0
		for n < len(environ) && environ[n] != 0 {
			n++
		}
		if n == len(environ) {
			return nil, errOdd
		}
		r.Environ = append(r.Environ, string(environ[:n]))
		environ = environ[n+1:]
	}
	return r, nil
}

// Alive returns the bytes that tell the command that the worker still works.
func Alive() []byte { return []byte{alive} }

// Encode returns the reply as bytes.
func (r *Reply) Encode() []byte {
	data := []byte{replying, byte(r.Code)}
	return appendText(appendText(data, r.Stdout), r.Stderr)
}

// decodeReply decodes everything that the worker has sent.
func decodeReply(data []byte) (*Reply, error) {
	for len(data) > 0 && data[0] == alive {
		data = data[1:]
	}
	if len(data) < 2 || data[0] != replying {
		return nil, errOdd
	}
	r := &Reply{Code: int(data[1])}
	var err error
	if r.Stdout, data, err = cutText(data[2:]); err != nil {
		return nil, err
	}
	if r.Stderr, data, err = cutText(data); err != nil {
		return nil, err
	}
	if len(data) > 0 {
		return nil, errOdd
	}
	return r, nil
}
