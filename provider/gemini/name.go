package gemini

import (
	"strings"

	"github.com/belay-run/belay/provider/internal/wire"
)

// maxName is the length of the longest tool name that the service accepts.
const maxName = 64

// sentName returns a tool name that the service accepts. It replaces characters that the
// service rejects and shortens long names. A hash at the end keeps changed names different.
// The result depends only on the name, so old calls always have the same encoding.
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

// beginsAName reports whether a name begins with a letter or an underscore, as the service
// requires.
func beginsAName(name string) bool {
	return name != "" && isWord(rune(name[0])) && (name[0] < '0' || name[0] > '9')
}

func isWord(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
