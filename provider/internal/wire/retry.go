package wire

import (
	"net/http"
	"strconv"
	"time"
)

// MaxWait is the longest wait that RetryAfter returns. It is longer than any caller waits,
// and too short to overflow a duration.
const MaxWait = 24 * time.Hour

// RetryAfter returns the wait that the headers of an answer ask for. It reads Retry-After-Ms
// first and then Retry-After. It returns 0 if neither header is valid.
func RetryAfter(headers http.Header, now time.Time) time.Duration {
	if exact, err := strconv.ParseFloat(headers.Get("Retry-After-Ms"), 64); err == nil && exact > 0 {
		return time.Duration(min(exact, float64(MaxWait.Milliseconds())) * float64(time.Millisecond))
	}
	return ParseRetryAfter(headers.Get("Retry-After"), now)
}

// ParseRetryAfter returns the wait that a Retry-After header asks for. The value is a number
// of seconds or a date. ParseRetryAfter returns 0 for any other value.
func ParseRetryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds > 0 {
		wait = time.Duration(min(seconds, MaxWait.Seconds()) * float64(time.Second))
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return max(wait, 0)
}
