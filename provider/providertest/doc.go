// Package providertest tests providers of models. It has a conformance suite and strict test
// servers with the protocols of the services.
//
// # Usage
//
// Every provider must pass [Test]. Pass it two functions: one starts a server with the
// provider's protocol, the other returns a model that uses this server:
//
//	providertest.Test(t, providertest.StartAnthropic, func(t testing.TB, server providertest.Server) belay.Model {
//		return anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: server.URL(), Key: server.Key()})
//	})
//
// [TestSwap] checks conversations that another provider began. [TestWhole] is for protocols
// whose servers may answer without a stream.
//
// A [Server] sends scripted replies and refuses what the real service would refuse. The
// replies are the same for all protocols. There are four servers: [Anthropic], [Gemini], and
// for OpenAI and compatible servers [Responses] and [Chat]. For another protocol, implement
// Server. You can also use a server without the suite, to test an agent with its real
// provider and no network.
//
// [TestRecordings] replays recordings of the real services, to show that the servers behave
// like them. If you have a key, it can also record.
//
// # Concurrency
//
// Any number of goroutines can send requests to a server and script replies. The rules of
// the suite run in parallel. Each rule has its own server and model.
//
// # Errors
//
// A server refuses a malformed request like the real service. The message says where the
// mistake is. The message is also in Request.Refused. A request without a scripted reply
// fails the test.
//
// # Testing
//
// The tests of this package run the suite on providers that are broken on purpose. Each rule
// must find a fault.
package providertest
