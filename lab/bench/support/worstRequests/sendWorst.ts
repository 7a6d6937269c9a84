import type { WorstRequest } from './worstRequest.js';

export interface WorstOutcome {
  status: number;
  /** undefined: the answer does not contain it as JSON. */
  accepted: number | undefined;
  answerMs: number;
}

/** Sends a body of the request and waits for the whole answer. */
export async function sendWorst(
  port: number,
  key: string,
  request: WorstRequest,
  body: Buffer,
): Promise<WorstOutcome> {
  const started = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}${request.path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': request.contentType,
      ...(request.contentEncoding ? { 'content-encoding': request.contentEncoding } : {}),
    },
    body: new Uint8Array(body),
  });
  const answer = await response.text();
  const answerMs = performance.now() - started;
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  const accepted = isJson ? (JSON.parse(answer) as { accepted?: number }).accepted : undefined;
  return { status: response.status, accepted, answerMs };
}
