/** An application that calls Anthropic with the official client, which traces itself where tracing is on. */
const { anthropicMakers, makeCalls, readRun, runProgram } = require('./run.cjs');
const { startTracing } = require('./tracing.cjs');
const { Anthropic } = require('@anthropic-ai/sdk');

const provider = startTracing('anthropicSdk', []);

runProgram(async () => {
  const run = readRun();
  const client = new Anthropic({ apiKey: 'sk-ant-test', baseURL: run.anthropicBaseUrl });
  const failures = await makeCalls(run.plan, anthropicMakers(client));
  await provider.shutdown();
  return failures;
});
