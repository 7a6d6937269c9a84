import { Chip } from './Page';

/** The state of a run and, where it failed, why. */
export function RunStatus({ run }: { run: { status: string; error: { message: string } | null } }) {
  return (
    <>
      <Chip kind={run.status === 'succeeded' ? 'good' : run.status === 'failed' ? 'bad' : 'plain'}>
        {run.status}
      </Chip>{' '}
      {run.error?.message}
    </>
  );
}
