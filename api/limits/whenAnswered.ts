import type { Context } from 'koa';

/** Does `work` when the answer has left or the client has gone: once, with one listener a request. */
export function whenAnswered(ctx: Context, work: () => void): void {
  if (ctx.res.destroyed) {
    work();
    return;
  }
  const waiting = ctx.state.whenAnswered as (() => void)[] | undefined;
  if (waiting) {
    waiting.push(work);
    return;
  }
  const all = [work];
  ctx.state.whenAnswered = all;
  ctx.res.once('close', () => {
    for (const each of all) each();
  });
}
