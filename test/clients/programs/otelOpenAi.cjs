/** An application that calls OpenAI with the official client, watched by @opentelemetry/instrumentation-openai. */
const { makeCalls, openAiMakers, readRun, runProgram } = require('./run.cjs');
const { startTracing } = require('./tracing.cjs');
const { OpenAIInstrumentation } = require('@opentelemetry/instrumentation-openai');

const provider = startTracing('otelOpenAi', [new OpenAIInstrumentation()]);
const { OpenAI } = require('openai');

runProgram(async () => {
  const run = readRun();
  const client = new OpenAI({ apiKey: 'sk-test', baseURL: run.openAiBaseUrl });
  const failures = await makeCalls(run.plan, openAiMakers(client));
  await provider.shutdown();
  return failures;
});
