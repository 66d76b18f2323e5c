/** What somebody decides about the conflicts of a merge, and the lines that a request has of it. */

// Conflicts of values, where a side can be taken; others are rules that the merged state would break.
const SIDED = new Set(["divergent_insert", "divergent_update", "delete_vs_update"]);

export function keyOfConflict(conflict) {
  return `${conflict.entity_kind} ${conflict.type_name} ${conflict.entity_id} ${conflict.kind}`;
}

/** The questions of a conflict: one for each property, or one for the whole entity. */
export function listQuestions(conflict) {
  const key = keyOfConflict(conflict);
  if (conflict.kind === "schema_conflict" || conflict.entity_id === null) return [];
  const isByProperty =
    conflict.kind.startsWith("divergent_") && (conflict.properties ?? []).length > 0;
  const names = isByProperty ? conflict.properties : [null];
  return names.map((property) => ({
    key: `${key} ${property ?? ""}`,
    property,
    choices: listChoices(conflict, property),
  }));
}

function listChoices(conflict, property) {
  if (!SIDED.has(conflict.kind)) return ["delete"];
  if (property !== null) return ["ours", "theirs", "base", "value"];
  return ["ours", "theirs", "delete"];
}

/** The line of a decision, as `--resolve` reads it. */
function writeLine(conflict, property, decision) {
  const take = decision.take === "value" ? { value: decision.value } : decision.take;
  return {
    [conflict.entity_kind === "edge" ? "edge" : "type"]: conflict.type_name,
    id: conflict.entity_id,
    ...(property === null ? {} : { property }),
    take,
  };
}

export function writeResolution(conflicts, decisions) {
  return conflicts.flatMap((conflict) =>
    listQuestions(conflict).flatMap(({ key, property }) => {
      const decision = decisions.get(key);
      return decision === undefined || decision.isIncomplete
        ? []
        : [writeLine(conflict, property, decision)];
    }),
  );
}

export function countOpen(conflicts, decisions) {
  return conflicts.reduce((sum, conflict) => {
    const questions = listQuestions(conflict);
    const open = questions.filter(
      ({ key }) => decisions.get(key) === undefined || decisions.get(key).isIncomplete,
    );
    return sum + (questions.length === 0 ? 1 : open.length);
  }, 0);
}
