/**
 * Recorded requests of Python clients with the plan of their calls. Written by `npm run test:python-clients`, replayed
 * by the suite.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { PlannedCall } from '../../fakes/plannedCall.js';
import type { CapturedRequest } from './captureServer.js';

export interface Recording {
  /** The seed that the plan was drawn from. */
  seed: number;
  /** When the calls were made, ISO 8601. */
  recordedAt: string;
  plan: PlannedCall[];
  requests: CapturedRequest[];
}

interface RecordingFile extends Omit<Recording, 'requests'> {
  requests: { path: string; headers: Record<string, string>; bodyBase64: string }[];
}

function fileOf(name: string): URL {
  return new URL(`../python/fixtures/${name}.json`, import.meta.url);
}

export function readRecording(name: string): Recording {
  const file = JSON.parse(readFileSync(fileOf(name), 'utf8')) as RecordingFile;
  const requests = file.requests.map(({ path, headers, bodyBase64 }) => ({
    path,
    headers,
    body: Buffer.from(bodyBase64, 'base64'),
  }));
  return { ...file, requests };
}

/** Stores a recording without the client's keys. */
export function writeRecording(name: string, recording: Recording): void {
  const requests = recording.requests.map(({ path, headers, body }) => {
    const kept = Object.entries(headers).filter(([header]) => header !== 'authorization');
    return { path, headers: Object.fromEntries(kept), bodyBase64: body.toString('base64') };
  });
  const plan = recording.plan.map((call) => JSON.stringify(call)).join(',\n    ');
  const { seed, recordedAt } = recording;
  const head = `{\n  "seed": ${seed},\n  "recordedAt": "${recordedAt}",\n  "plan": [\n    ${plan}\n  ],\n`;
  writeFileSync(fileOf(name), `${head}  "requests": ${JSON.stringify(requests, null, 2)}\n}\n`);
}
