/**
 * The common part of every client program, independent of its instrumentation: it reads the run file, makes the planned
 * calls batch by batch, and exits when the telemetry is sent. It touches telemetry only to flush it.
 */
const { readFileSync } = require('node:fs');

/** The run file named on the command line; see test/clients/support/clientRun.ts for its fields. */
function readRun() {
  return JSON.parse(readFileSync(process.argv[2], 'utf8'));
}

/**
 * Makes all calls of the plan. `makers` has, for each api, a function that makes one call; its errors are expected (the
 * provider refused, the stream was aborted) and are counted, not printed.
 */
async function makeCalls(plan, makers) {
  let failures = 0;
  const batches = [...new Set(plan.map((call) => call.batch))].sort((a, b) => a - b);
  for (const batch of batches) {
    const made = plan.filter((call) => call.batch === batch).map((call) => makers[call.api](call));
    for (const result of await Promise.allSettled(made)) {
      if (result.status === 'rejected') failures += 1;
      if (result.status === 'rejected' && process.env.SHOW_FAILURES) console.error(result.reason);
    }
  }
  return failures;
}

/** Runs `main` and ends the process with its outcome; one JSON line on stdout has the number of failed calls. */
function runProgram(main) {
  main().then(
    (failures) => {
      console.log(JSON.stringify({ failures }));
      process.exit(0);
    },
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

function promptOf(call) {
  return `Please do ${call.id}`;
}

/** Reads a stream to its end, or leaves it after its first words when the call is one to be aborted. */
async function readStream(stream, call) {
  let seen = 0;
  for await (const _part of stream) {
    seen += 1;
    if (call.fate === 'abort' && seen === 2) {
      stream.controller.abort();
      break;
    }
  }
}

/** Makers for the official OpenAI client. */
function openAiMakers(client) {
  return {
    async chat(call) {
      const messages = [{ role: 'user', content: promptOf(call) }];
      if (!call.isStream) return client.chat.completions.create({ model: call.model, messages });
      const options = call.asksForUsage ? { stream_options: { include_usage: true } } : {};
      return readStream(
        await client.chat.completions.create({ model: call.model, messages, stream: true, ...options }),
        call,
      );
    },
    async responses(call) {
      const body = { model: call.model, input: promptOf(call) };
      if (!call.isStream) return client.responses.create(body);
      return readStream(await client.responses.create({ ...body, stream: true }), call);
    },
    embeddings: (call) => client.embeddings.create({ model: call.model, input: promptOf(call) }),
  };
}

/** Makers for the official Anthropic client. */
function anthropicMakers(client) {
  return {
    async messages(call) {
      const body = {
        model: call.model,
        max_tokens: 64,
        messages: [{ role: 'user', content: promptOf(call) }],
      };
      if (call.isStreamHelper) {
        const stream = client.messages.stream(body);
        if (call.fate === 'abort') return readStream(stream, call);
        return stream.finalMessage();
      }
      if (call.isStream) return readStream(await client.messages.create({ ...body, stream: true }), call);
      return client.messages.create(body);
    },
  };
}

module.exports = { readRun, makeCalls, runProgram, promptOf, openAiMakers, anthropicMakers };
