// The official Go SDK of OpenAI is only a test client. It has a module of its own, so that programs which use Belay do
// not carry it.
module github.com/belay-run/belay/serve/testdata/openai

go 1.26.0

require github.com/openai/openai-go/v3 v3.90.0

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/tidwall/gjson v1.19.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
)
