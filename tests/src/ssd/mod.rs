//! Cases of the Mamba-2 forward pass and decode step that run on every device, against numbers and the float64 recurrence.

pub mod bench;
pub mod bound;
pub mod decode;
pub mod draw;
pub mod mixer;
pub mod numerics;
pub mod packed;
pub mod sizes;
pub mod special;
pub mod split;
pub mod types;
pub mod views;

/// Calls a macro with every case, as `module: function function ..;`.
#[macro_export]
macro_rules! for_each_ssd_case {
    ($then:ident) => {
        $then! {
            numerics:
                dead_rows_of_the_last_chunk_are_never_read
                padding_tokens_do_not_decay_the_state
                a_decay_beyond_the_range_of_exp_leaves_its_neighbours_alone
                a_strong_uneven_decay_stays_finite_and_bounded
                strong_decays_do_not_blur_the_tokens_after_them
                softplus_is_right_at_both_ends_in_every_type
                the_clamp_is_that_of_prefill_and_decode
                a_positive_decay_acts_as_none
                the_future_does_not_change_the_past
                prefill_and_decode_do_not_drift;
            packed:
                each_sequence_decays_from_its_own_start
                the_initial_state_feeds_the_first_run_whatever_its_index
                empty_sequences_keep_their_initial_state
                documents_may_end_anywhere_in_a_chunk
                offsets_and_indices_of_every_width_agree;
            views:
                slices_of_one_fused_row_are_taken_as_they_are
                rows_far_apart_equal_their_copy
                strides_of_a_dimension_of_one_mean_nothing
                broadcast_inputs_equal_their_copies
                equal_rows_of_a_transposed_batch_give_equal_bits
                channels_in_reverse_order_equal_their_copy;
            sizes:
                every_length_and_chunk_matches_float64
                sizes_that_are_not_powers_of_two_match_float64
                the_largest_sizes_run_in_f32
                heads_of_a_group_stand_beside_each_other
                a_tail_beyond_65536_tokens_is_computed
                no_tokens_and_no_batch_do_nothing
                more_sequences_than_a_grid_axis_holds
                more_heads_than_a_grid_axis_holds
                more_chunks_than_a_grid_axis_holds;
            decode:
                steps_continue_a_pass
                several_tokens_a_step_equal_single_ones
                the_states_of_other_slots_are_untouched
                steps_know_every_option;
            mixer:
                prefill_matches_float64_in_every_type
                every_kind_of_layer_matches_float64
                packed_sequences_see_nothing_of_each_other
                pieces_and_steps_equal_one_prefill
                padding_slots_leave_every_state_alone;
            types:
                types_may_differ
                initial_states_are_never_left_over
                states_between_chunks_may_be_f32;
            split:
                a_pass_in_pieces_equals_one_pass
                pieces_in_bf16_equal_one_pass
                runs_and_batch_positions_give_the_same_bits;
            special:
                nan_spreads_to_later_tokens_only
                x_that_is_not_finite_reaches_what_depends_on_it
                other_inputs_of_tokens_reach_what_depends_on_them
                states_and_weights_reach_what_depends_on_them;
        }
    };
}
