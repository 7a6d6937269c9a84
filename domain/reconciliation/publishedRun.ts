/** How a gap run ends that has published its findings. */

export const PUBLISHED_STATUSES = ['succeeded', 'partial', 'failed'] as const;

/** What a run came to when it published: how it ends unless something that follows fails. */
export interface Publication {
  status: (typeof PUBLISHED_STATUSES)[number];
  error?: { code: string; message: string };
}

/**
 * The end of a run that has published. Published findings stay, so it is neither cancelled nor failed by what follows:
 * a problem there, such as claims that could not be drafted, makes a run partial that would have succeeded.
 */
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
