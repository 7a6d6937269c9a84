/** The final statuses of a gap run that has published its findings. */

export const PUBLISHED_STATUSES = ['succeeded', 'partial', 'failed'] as const;

/** The result of a run at its publication, with which it ends unless a later step fails. */
export interface Publication {
  status: (typeof PUBLISHED_STATUSES)[number];
  error?: { code: string; message: string };
}

/** Published findings stay; later problems make a succeeded run partial. */
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
