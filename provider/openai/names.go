package openai

import (
	"regexp"
	"strings"
	"sync"

	"github.com/belay-run/belay/provider/internal/wire"
)

// The names of tools and the ids of calls that the service accepts. Chat is stricter about ids
// than Responses, so its limit applies to both.
var (
	fitName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	})
	fitID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	})
	unfit = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	})

	fitShortID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	})
)

const (
	mostName = 64
	hashed   = 8 // characters of a hash that distinguish names
)

// wireName returns a name for a tool that the service accepts. The result depends only on the
// name, so that old calls are always sent the same way. A hash distinguishes names that would
// otherwise become equal.
func wireName(name string) string {
	if fitName().MatchString(name) {
		return name
	}
	fit := unfit().ReplaceAllString(name, "_")
	fit = fit[:min(len(fit), mostName-hashed-1)]
	return strings.TrimRight(fit, "_") + "_" + wire.Hash(name)[:hashed]
}

// wireID returns an id for a call that the service accepts. It needs no translation back: the
// service only sends ids that it made itself.
func wireID(id string) string {
	if fitID().MatchString(id) {
		return id
	}
	return "call_" + wire.Hash(id)[:32]
}

// shortID returns an id for a call that Mistral accepts: nine letters or digits.
func shortID(id string) string {
	if fitShortID().MatchString(id) {
		return id
	}
	return wire.Hash(id)[:9]
}

// wantsShortIDs reports whether a server accepts only short ids: Mistral, and other servers of
// its models, whose templates reject longer ones. All other servers accept any id.
func wantsShortIDs(host, model string) bool {
	model = strings.ToLower(model)
	return strings.HasSuffix(host, "mistral.ai") || strings.Contains(model, "stral") || strings.Contains(model, "mixtral") || strings.Contains(model, "pixtral")
}
