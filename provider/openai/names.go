package openai

import (
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/provider/internal/wire"
)

// The service accepts tool names that match fitName and call ids that match fitID. The
// limit for ids is lower in Chat than in Responses. This package uses the lower limit for
// both.
var (
	fitName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)
	fitID   = lazyregexp.New(`^[a-zA-Z0-9_-]{1,40}$`)
	unfit   = lazyregexp.New(`[^a-zA-Z0-9_-]`)

	fitShortID = lazyregexp.New(`^[a-zA-Z0-9]{9}$`)
)

const (
	mostName = 64
	hashed   = 8 // length of the hash at the end of a changed name
)

// wireName returns a tool name that the service accepts. It changes only names that the
// service rejects. A changed name ends with a hash, so that different names stay
// different. The result depends only on the name, so old calls always have the same
// encoding.
func wireName(name string) string {
	if fitName.MatchString(name) {
		return name
	}
	fit := unfit.ReplaceAllString(name, "_")
	fit = fit[:min(len(fit), mostName-hashed-1)]
	return strings.TrimRight(fit, "_") + "_" + wire.Hash(name)[:hashed]
}

// wireID returns a call id that the service accepts. It is never translated back, because a
// response contains only ids that the service made.
func wireID(id string) string {
	if fitID.MatchString(id) {
		return id
	}
	return "call_" + wire.Hash(id)[:32]
}

// shortID returns a call id that Mistral accepts: nine letters or digits.
func shortID(id string) string {
	if fitShortID.MatchString(id) {
		return id
	}
	return wire.Hash(id)[:9]
}

// wantsShortIDs reports whether a server accepts only short call ids. Mistral does, and so
// do the templates of its models on other servers.
func wantsShortIDs(host, model string) bool {
	model = strings.ToLower(model)
	return strings.HasSuffix(host, "mistral.ai") || strings.Contains(model, "stral") || strings.Contains(model, "mixtral") || strings.Contains(model, "pixtral")
}
