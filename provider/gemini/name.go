package gemini

import (
	"strings"

	"github.com/belay-run/belay/provider/internal/wire"
)

// maxName is the longest name of a tool that the service accepts.
const maxName = 64

// sentName returns a name for a tool that the service accepts. A name that is too long, or
// contains characters that the service rejects, is changed and gets a hash at its end, so that
// no two names become equal. The result depends only on the name, so that old calls are always
// sent the same way.
func sentName(name string) string {
	fits := strings.Map(func(r rune) rune {
		if isWord(r) || strings.ContainsRune(".:-", r) {
			return r
		}
		return '_'
	}, name)
	if fits == name && len(name) <= maxName && beginsAName(name) {
		return name
	}
	if !beginsAName(fits) {
		fits = "_" + fits
	}
	end := "_" + wire.Hash(name)[:10]
	return fits[:min(len(fits), maxName-len(end))] + end
}

// beginsAName reports whether a name begins as the service requires: with a letter or an
// underscore.
func beginsAName(name string) bool {
	return name != "" && isWord(rune(name[0])) && (name[0] < '0' || name[0] > '9')
}

func isWord(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
