package openai_test

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/belay-run/belay/provider/openai"
)

// Set Options.URL to use a server with Chat Completions.
func ExampleOptions() {
	// docs:begin servers
	ollama := openai.New("qwen3", &openai.Options{
		URL: "http://localhost:11434/v1", Provider: "ollama", Window: 32_768,
	})
	llamaCpp := openai.New("qwen3", &openai.Options{
		URL: "http://localhost:8080/v1", Provider: "llama.cpp", Window: 32_768,
	})
	vllm := openai.New("Qwen/Qwen3-8B", &openai.Options{
		URL: "http://localhost:8000/v1", Provider: "vllm", Window: 40_960,
		Extra: json.RawMessage(`{"chat_template_kwargs":{"enable_thinking":false}}`), // fields that only this server has
	})
	openRouter := openai.New("anthropic/claude-sonnet-4.6", &openai.Options{
		URL: "https://openrouter.ai/api/v1", Provider: "openrouter", Key: os.Getenv("OPENROUTER_API_KEY"),
	})
	// docs:end servers
	for _, model := range []*openai.Model{ollama, llamaCpp, vllm, openRouter} {
		fmt.Println(model.Info().Name, model.Info().Window, model.Info().Price.In)
	}
	// Output:
	// ollama/qwen3 32768 0
	// llama.cpp/qwen3 32768 0
	// vllm/Qwen/Qwen3-8B 40960 0
	// openrouter/anthropic/claude-sonnet-4.6 1000000 3
}
