/** An application that calls OpenAI with the official client, watched by @arizeai/openinference-instrumentation-openai. */
const { makeCalls, openAiMakers, readRun, runProgram } = require('./run.cjs');
const { startTracing } = require('./tracing.cjs');
const { OpenAIInstrumentation } = require('@arizeai/openinference-instrumentation-openai');

const provider = startTracing('openInferenceOpenAi', [new OpenAIInstrumentation()]);
const { OpenAI } = require('openai');

runProgram(async () => {
  const run = readRun();
  const client = new OpenAI({ apiKey: 'sk-test', baseURL: run.openAiBaseUrl });
  const failures = await makeCalls(run.plan, openAiMakers(client));
  await provider.shutdown();
  return failures;
});
