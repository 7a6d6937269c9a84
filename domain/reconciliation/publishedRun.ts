/** How a gap run ends that has published its findings. */

export const PUBLISHED_STATUSES = ['succeeded', 'partial', 'failed'] as const;

/** What a run came to when it published: how it ends unless something that follows fails. */
export interface Publication {
  status: (typeof PUBLISHED_STATUSES)[number];
  error?: { code: string; message: string };
}

/** Published findings stay: later problems make a succeeded run partial. */
export function endOfPublished(publication: Publication, problem: string | undefined): Publication {
  if (problem === undefined) return publication;
  const { status, error } = publication;
  return {
    status: status === 'succeeded' ? 'partial' : status,
    error: error
      ? { code: error.code, message: `${error.message}; ${problem}` }
      : { code: 'follow_up_failed', message: problem },
  };
}
