/** An application that calls Anthropic with the official client, watched by @arizeai/openinference-instrumentation-anthropic. */
const { anthropicMakers, makeCalls, readRun, runProgram } = require('./run.cjs');
const { startTracing } = require('./tracing.cjs');
const { AnthropicInstrumentation } = require('@arizeai/openinference-instrumentation-anthropic');

const provider = startTracing('openInferenceAnthropic', [new AnthropicInstrumentation()]);
const { Anthropic } = require('@anthropic-ai/sdk');

runProgram(async () => {
  const run = readRun();
  const client = new Anthropic({ apiKey: 'sk-ant-test', baseURL: run.anthropicBaseUrl });
  const failures = await makeCalls(run.plan, anthropicMakers(client));
  await provider.shutdown();
  return failures;
});
