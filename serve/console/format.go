package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// asset returns the address of a file of the console. It has a hash of the content, so a new
// binary has new addresses.
func asset(name string) string { return "/assets/" + name + "?v=" + versions()[name] }

var versions = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	entries, _ := fs.ReadDir(assets, "assets") // it is part of the binary
	for _, e := range entries {
		data, _ := fs.ReadFile(assets, "assets/"+e.Name())
		sum := sha256.Sum256(data)
		all[e.Name()] = hex.EncodeToString(sum[:6])
	}
	return all
})

// sessionPath returns the address of a session. The id of a subagent's session has slashes.
func sessionPath(id string) string { return "/sessions/" + url.PathEscape(id) }

// queuePath returns the address of a queued message.
func queuePath(session, turn string) string {
	return sessionPath(session) + "/queue/" + url.PathEscape(turn)
}

// grantPath returns the address of an approval that covers more than one call.
func grantPath(session, grant string) string {
	return sessionPath(session) + "/grants/" + url.PathEscape(grant)
}

// approvalPath returns the address of an approval.
func approvalPath(id string) string { return "/approvals/" + url.PathEscape(id) }

// sentence makes a sentence from the text of an error.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}

// cut returns at most n runes of one line of a text.
func cut(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// ago says how long ago a time was.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := time.Since(t)
	switch {
	case d < 0:
		return "in " + span(-d)
	case d < 5*time.Second:
		return "now"
	default:
		return span(d) + " ago"
	}
}

// span returns a duration in one unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	default:
		return strconv.Itoa(int(d.Hours()/24)) + " d"
	}
}

// short returns a short duration, such as 1.2 ms.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Microsecond:
		return strconv.FormatInt(d.Nanoseconds(), 10) + " ns"
	case d < time.Millisecond:
		return digits(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second:
		return digits(float64(d)/float64(time.Millisecond)) + " ms"
	case d < time.Minute:
		return digits(d.Seconds()) + " s"
	default:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
}

// digits returns a number with three digits.
func digits(n float64) string {
	switch {
	case n < 10:
		return strconv.FormatFloat(n, 'f', 2, 64)
	case n < 100:
		return strconv.FormatFloat(n, 'f', 1, 64)
	default:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
}

// count returns a large number in a short form, such as 12.4k.
func count[N int | int64](n N) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(int64(n), 10)
	case n < 1_000_000:
		return strings.TrimSuffix(digits(float64(n)/1e3), ".0") + "k"
	default:
		return digits(float64(n)/1e6) + "M"
	}
}

// tokens returns the number of all tokens.
func tokens(u belay.Usage) string {
	return count(u.In + u.Out + u.CacheRead + u.CacheWrite)
}

// money returns a cost in dollars.
func money(cost float64) string {
	switch {
	case cost == 0:
		return "$0"
	case cost < 0.01:
		return "<$0.01"
	case cost < 100:
		return fmt.Sprintf("$%.2f", cost)
	default:
		return fmt.Sprintf("$%.0f", cost)
	}
}

// stamp returns a time for a tooltip and for machines.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// pretty indents JSON.
func pretty(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return string(data)
	}
	return b.String()
}

// labels returns labels as name=value, in order.
func labels(all map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}

// plural returns a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// noun returns the noun for a number.
func noun(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// sinceNow returns how long ago a time was.
func sinceNow(t time.Time) time.Duration { return max(time.Since(t), 0) }
