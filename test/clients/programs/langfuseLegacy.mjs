/**
 * An application that calls OpenAI through the wrapper of Langfuse before its version 4; configured by LANGFUSE_*
 * variables alone. It sends each item alone, so that updates can arrive before creates.
 */
import { Langfuse, observeOpenAI } from 'langfuse';
import OpenAI from 'openai';
import run from './run.cjs';

run.runProgram(async () => {
  const { plan, openAiBaseUrl } = run.readRun();
  const clientInitParams = { flushAt: 1 };
  const client = observeOpenAI(new OpenAI({ apiKey: 'sk-test', baseURL: openAiBaseUrl }), {
    clientInitParams,
  });
  const failures = await run.makeCalls(plan, run.openAiMakers(client));
  await client.shutdownAsync();
  // Traces that were made by hand are sent by the same client.
  await new Langfuse(clientInitParams).shutdownAsync();
  return failures;
});
