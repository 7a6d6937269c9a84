/** Runs the cases of trueup-sdk with real Python clients, and compares the events that Trueup has of them. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { PlannedCall } from '../../fakes/plannedCall.js';
import { type ScriptedAnswer, type SeenRequest, startScriptedApi } from '../../fakes/scriptedApi.js';
import { pythonEnvironment } from '../../support/python.js';
import { makeVenv } from '../../support/pythonVenv.js';
import type { CostCalculator } from '../costCalculator.js';
import { TRUEUP_SDK_ANTHROPIC, TRUEUP_SDK_OPENAI } from './clientFacts.js';
import { type ExpectedEvent, expectedEvents } from './expectedEvents.js';
import type { ObservedEvent } from './observedEvents.js';
import type { SdkCase, SdkEvent } from './sdkCase.js';

export const PYTHON_PROGRAMS = fileURLToPath(new URL('../python/', import.meta.url));
const PROGRAM_TIME_MS = 180_000;
const NO_TOKENS = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0 };

export type ClientKind = 'sync' | 'async';

/** Versions of the clients, by the file that pins them; `minor` is the oldest Python 3 that they all run on. */
export const CLIENT_VERSIONS = [
  { name: 'of November 2025', file: 'clients-november-2025.txt', minor: 9 },
  { name: 'of November 2026', file: 'clients-november-2026.txt', minor: 11 },
] as const;

/** Installs the clients into a temporary folder, which later runs use again. @returns the path of its Python */
export function installClients({ file, minor }: { file: string; minor: number }): string {
  const requirements = join(PYTHON_PROGRAMS, file);
  const digest = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(tmpdir(), `trueup-python-clients-${digest}`);
  makeVenv(folder, requirements, minor);
  return join(folder, 'bin', 'python');
}

/** Runs a program of test/clients/python with the package's sources; returns the last line that it prints. */
export async function runSdkProgram(
  python: string,
  program: string,
  settings: object,
  environment: Record<string, string> = {},
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'trueup-client-'));
  try {
    const file = join(folder, 'run.json');
    writeFileSync(file, JSON.stringify(settings));
    const child = spawn(python, [join(PYTHON_PROGRAMS, program), file], {
      // The client of Anthropic traces itself only where tracing is on; nothing of the tester's own may turn it on.
      env: { ...pythonEnvironment(environment), HOME: folder },
      timeout: PROGRAM_TIME_MS,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk: Buffer) => {
        output[name] += chunk.toString('utf8');
      });
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (code !== 0) throw new Error(`${program} ended with ${code}:\n${output.stdout}\n${output.stderr}`);
    return output.stdout.trim().split('\n').at(-1) ?? '';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A case's calls as the application sees them, as text, and as the provider sees them. */
export async function runSdkCase(
  python: string,
  one: SdkCase,
  run: { kind: ClientKind; isObserved: boolean; createdAt: number },
  trueup: Record<string, string>,
): Promise<{ seen: string; requests: string[] }> {
  let origin = '';
  const answers: readonly ScriptedAnswer[] = one.answers(run.createdAt, () => origin);
  const provider = await startScriptedApi(answers);
  origin = provider.origin;
  try {
    const { port } = new URL(origin);
    const settings = { ...run, case: one.name, port: Number(port) };
    const seen = await runSdkProgram(python, 'trueup_sdk_cases.py', settings, trueup);
    return { seen: seen.replaceAll(port, '<port>'), requests: provider.requests.map(requestText) };
  } finally {
    await provider.close();
  }
}

/** Boundaries of forms are random. */
function requestText({ path, body }: SeenRequest): string {
  const boundary = /^--(\S+)\r\n/.exec(body)?.[1];
  return `${path} ${boundary === undefined ? body : body.replaceAll(boundary, '<boundary>')}`;
}

/** The events of a drawn plan of calls to OpenAI and Anthropic. */
export function expectedOfSdkPlan(
  plan: readonly PlannedCall[],
  calculator: CostCalculator,
  atMillis: number,
): ExpectedEvent[] {
  const isAnthropic = ({ api }: PlannedCall) => api === 'messages';
  const others = plan.filter((call) => !isAnthropic(call));
  return [
    ...expectedEvents(others, TRUEUP_SDK_OPENAI, calculator, atMillis),
    ...expectedEvents(plan.filter(isAnthropic), TRUEUP_SDK_ANTHROPIC, calculator, atMillis),
  ];
}

/** Each call of a case is one event, with its exact cost. */
export function expectSdkEvents(
  events: readonly ObservedEvent[],
  one: SdkCase,
  atMillis: number,
  calculator: CostCalculator,
): void {
  const due = one.events.map((event) => expectedLine(event, atMillis, calculator));
  expect(events.map((event) => observedLine(event, one.events)).sort()).toEqual(due.sort());
}

interface SeenEvent extends ObservedEvent {
  stop_reason: string;
  team_id: string | null;
  feature: string | null;
  session_id: string;
  user_id: string | null;
  is_batch: boolean;
  batch_id: string | null;
}

function expectedLine(event: SdkEvent, atMillis: number, calculator: CostCalculator): string {
  const { provider, model, status, stop, feature, tokens, batch } = event;
  const priced = calculator.cost({
    provider,
    model: event.pricedAs ?? model,
    atMillis,
    tokens: { ...NO_TOKENS, ...tokens },
    isBatch: batch !== undefined,
  });
  if (tokens !== undefined) expect(priced.isPriced, `a price of ${model} at ${provider}`).toBe(true);
  const cost =
    event.outputTokens === undefined ? `$${tokens ? priced.usd : '0'}` : `${event.outputTokens} out`;
  return JSON.stringify([
    ...[provider, model, status, stop, feature, cost],
    ...['growth', event.session ?? '', event.user ?? null, batch ?? null],
  ]);
}

function observedLine(given: ObservedEvent, due: readonly SdkEvent[]): string {
  const event = given as SeenEvent;
  const isMedia = due.some(({ model, outputTokens }) => model === event.model && outputTokens !== undefined);
  return JSON.stringify([
    ...[event.provider, event.model, event.status, event.stop_reason, event.feature],
    isMedia ? `${event.output_tokens} out` : `$${event.usd}`,
    ...[event.team_id, event.session_id, event.user_id, event.is_batch ? event.batch_id : null],
  ]);
}
