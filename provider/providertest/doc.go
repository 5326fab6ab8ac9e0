// Package providertest tests providers of models. It has a conformance suite, and strict
// loopback servers that speak the protocols of the services.
//
// # Usage
//
// Every provider must pass [Test]. Pass it a function that starts a server of the provider's
// protocol, and one that opens a model which uses that server:
//
//	providertest.Test(t, providertest.StartAnthropic, func(t testing.TB, server providertest.Server) belay.Model {
//		return anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: server.URL(), Key: server.Key()})
//	})
//
// [TestSwap] is for conversations that another provider began, and [TestWhole] for
// protocols whose servers may answer without a stream.
//
// A [Server] answers with scripted replies, which are independent of the protocol, and refuses
// what the real service would refuse. There are [Anthropic], [Gemini], and [Responses] and
// [Chat] for OpenAI and compatible servers. To cover another protocol, implement Server for
// it. You can also use a server alone, to test an agent with its real provider and no network.
//
// Recordings show that the servers behave like the services: [TestRecordings] replays them,
// and makes them if you have a key.
//
// # Concurrency
//
// Any number of goroutines can send requests to a server and script replies. The rules of the
// suite run in parallel, each with its own server and model.
//
// # Errors
//
// A server refuses a malformed request as the service would, with a message that says where
// the mistake is; it is also in the field Refused of [Request]. A request without a scripted
// reply fails the test.
//
// # Testing
//
// The suite itself is tested with providers that are broken on purpose, one for each rule.
package providertest
