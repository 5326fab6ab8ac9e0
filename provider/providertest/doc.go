// Package providertest helps to test providers of models: a conformance suite,
// and strict servers on loopback that speak the wire protocols of providers.
//
// # Usage
//
// Each provider passes [Test]. It is given a function that starts a server of
// the provider's protocol, and one that opens a model which talks to it:
//
//	providertest.Test(t, providertest.StartAnthropic, func(t testing.TB, server providertest.Server) belay.Model {
//		return anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: server.URL(), Key: server.Key()})
//	})
//
// [TestSwap] is for conversations that another provider began, and [TestWhole] for
// protocols whose servers may answer without a stream.
//
// A [Server] answers with the replies it was scripted, which are worded without
// regard to the protocol, and refuses what the real service would refuse. There are
// [Anthropic], [Responses] and [Chat] for OpenAI and those who speak like it, and
// [Gemini]. To cover another protocol, implement Server for it. The servers are of
// use on their own too, to test an agent with its real provider and no network.
//
// What the servers know of the services is shown by recordings: [TestRecordings]
// replays them, and makes them where somebody has a key.
//
// # Concurrency
//
// A server takes requests and further replies from any number of goroutines.
// The rules of the suite run in parallel, each with a server and a model of its
// own.
//
// # Errors
//
// A malformed request is refused as the service would, with a message that says
// where it is malformed; [Request] holds it as Refused. A request that no reply
// was scripted for fails the test.
//
// # Testing
//
// The suite is tested with providers that are broken on purpose, one for each
// rule.
package providertest
